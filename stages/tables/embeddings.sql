-- name: traced
select * exclude embedding from embeddings;
